// In the browser's own window: load a page and wait until it is complete and at rest.
// Calls back with {error} or {pending}, or with {requests}, whose times are in s since 1970.

const [
  url, address, serverPort, hosts, authority, certificate, width, height, quietMs, limitMs, done,
] = arguments;
const TYPES = {
  2: "script", 3: "image", 4: "stylesheet", 6: "document", 7: "document", 11: "xhr", 14: "font",
  20: "fetch",
};
// What the page itself cancels is no failure, as in Chromium.
const NO_FAILURES = [Cr.NS_BINDING_REDIRECTED, Cr.NS_BINDING_ABORTED];
const browser = gBrowser.selectedBrowser;
const requests = [];
const pending = new Map();
let loaded = false, timer = null;

const service = (name, type) => Cc[`@mozilla.org/${name};1`].getService(type);
const seconds = (microseconds) => (microseconds ? microseconds / 1e6 : null);

function row(channel) {
  const times = channel.QueryInterface(Ci.nsITimedChannel);
  const ok = Components.isSuccessCode(channel.status) || NO_FAILURES.includes(channel.status);
  const received = (read) => {
    try {
      return read();
    } catch {
      return null; // there was no response
    }
  };
  return {
    url: channel.URI.spec,
    type: TYPES[channel.loadInfo.externalContentPolicyType] ?? "other",
    priority: String(channel.QueryInterface(Ci.nsISupportsPriority).priority),
    failure: ok ? null : failure(channel.status),
    status: received(() => channel.responseStatus),
    protocol: received(() => channel.protocolVersion),
    media_type: received(() => channel.contentType),
    bytes: received(() => channel.transferSize) ?? 0,
    start_s: seconds(times.asyncOpenTime),
    tcp_s: seconds(times.tcpConnectEndTime),
    handshake_s: seconds(times.connectEndTime),
    first_byte_s: seconds(times.responseStartTime),
    end_s: seconds(times.responseEndTime),
  };
}

function failure(status) {
  const errors = service("nss_errors_service", Ci.nsINSSErrorsService);
  const name = Object.keys(Cr).find((key) => Cr[key] === status);
  try {
    const bad = errors.getErrorClass(status) === Ci.nsINSSErrorsService.ERROR_CLASS_BAD_CERT;
    return `${bad ? "certificate: " : ""}${errors.getErrorMessage(status)}`;
  } catch {
    return name ?? `0x${status.toString(16)}`;
  }
}

function finish(result) {
  clearTimeout(timer);
  for (const topic of Object.keys(TOPICS)) Services.obs.removeObserver(observer, topic);
  browser.removeProgressListener(progress);
  done(result);
}

function rest() {
  clearTimeout(timer);
  if (loaded && !pending.size) timer = setTimeout(() => finish({ requests }), quietMs);
}

const TOPICS = {
  // A request by http continues as another one by https, and has no end of its own.
  "http-on-modify-request": (channel) =>
    channel.URI.schemeIs("https") && pending.set(channel.channelId, channel.URI.spec),
  "http-on-stop-request": (channel) => {
    pending.delete(channel.channelId);
    requests.push(row(channel));
  },
};
const observer = {
  observe(subject, topic) {
    const channel = subject.QueryInterface(Ci.nsIHttpChannel);
    const identified = channel.QueryInterface(Ci.nsIIdentChannel);
    if (channel.loadInfo.browsingContext?.browserId !== browser.browserId) return;
    TOPICS[topic](identified);
    rest();
  },
};
const progress = {
  QueryInterface: ChromeUtils.generateQI(["nsIWebProgressListener", "nsISupportsWeakReference"]),
  onStateChange(webProgress, _, flags, status) {
    const over = Ci.nsIWebProgressListener.STATE_STOP | Ci.nsIWebProgressListener.STATE_IS_NETWORK;
    if (!webProgress.isTopLevel || (flags & over) !== over) return;
    if (!Components.isSuccessCode(status)) return finish({ error: failure(status) });
    loaded = true;
    rest();
  },
};

const names = service("network/native-dns-override", Ci.nsINativeDNSResolverOverride);
for (const host of hosts) names.addIPOverride(host, address);
const certificates = service("security/x509certdb", Ci.nsIX509CertDB);
certificates.addCertFromBase64(authority, "C,,");
// The certificate names one host; for the others of a recorded page it is an exception. QUIC looks
// for that of the URL's port, TLS over TCP for that of the server's.
const known = certificates.constructX509FromBase64(certificate);
const exceptions = service("security/certoverride", Ci.nsICertOverrideService);
for (const host of hosts.filter((host) => host !== known.commonName))
  for (const port of [443, serverPort])
    exceptions.rememberValidityOverride(host, port, {}, known, true);
window.resizeBy(width - browser.clientWidth, height - browser.clientHeight);
setTimeout(() => finish({ pending: [...pending.values()] }), limitMs);
for (const topic of Object.keys(TOPICS)) Services.obs.addObserver(observer, topic);
browser.addProgressListener(progress, Ci.nsIWebProgress.NOTIFY_STATE_NETWORK);
browser.fixupAndLoadURIString(url, {
  triggeringPrincipal: Services.scriptSecurityManager.getSystemPrincipal(),
});
