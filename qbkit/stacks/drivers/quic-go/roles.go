package main

const usage = "usage: quic-go recv --listen IP:PORT --cert FILE --key FILE --out DIR\n       quic-go send --connect IP:PORT --controller cubic|reno (--duration-s X | --bytes N) --out DIR\n       quic-go serve --listen IP:PORT --cert FILE --key FILE --out DIR [--page FILE]\n       quic-go fetch --connect IP:PORT [--path /PATH] [--connection-options TAGS] (--duration-s X | --bytes N) --out DIR\n       quic-go origin --listen UNIX-SOCKET\n       quic-go web-serve --listen IP:PORT --controller cubic|reno --cert FILE --key FILE --site FOLDER\n       quic-go web-load --connect IP:PORT --protocol h2|h3 --path /PATH --out DIR"

var roles = map[string]role{
	"recv":      {hasCertificate, receive},
	"send":      {hasEnd, send},
	"serve":     {hasCertificate, serve},
	"fetch":     {hasEnd, fetch},
	"origin":    {func(arguments) bool { return true }, origin},
	"web-serve": {func(a arguments) bool { return hasCertificate(a) && a.site != "" }, webServe},
	"web-load":  {func(a arguments) bool { return a.protocol == "h2" || a.protocol == "h3" }, webLoad},
}
