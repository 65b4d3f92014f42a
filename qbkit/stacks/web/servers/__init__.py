"""Web servers, one file each; `qbkit.stacks.web.base` describes their interface."""
