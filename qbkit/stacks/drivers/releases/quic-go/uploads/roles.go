package main

const usage = "usage: quic-go recv --listen IP:PORT --cert FILE --key FILE --out DIR\n       quic-go send --connect IP:PORT --controller cubic|reno (--duration-s X | --bytes N) --out DIR"

var roles = map[string]role{
	"recv": {hasCertificate, receive},
	"send": {hasEnd, send},
}
