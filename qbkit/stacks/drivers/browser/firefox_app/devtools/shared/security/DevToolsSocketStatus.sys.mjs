// Asked by every background task, to wait for a debugger.
export const DevToolsSocketStatus = { hasSocketOpened: () => false };
