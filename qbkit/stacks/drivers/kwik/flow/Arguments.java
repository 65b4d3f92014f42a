package flow;

import java.net.InetSocketAddress;

/** The command line. */
class Arguments {
    private static final String USAGE = """
            usage: kwik recv --listen IP:PORT --cert FILE --key FILE --out DIR
                   kwik send --connect IP:PORT --controller newreno (--duration-s X | --bytes N) --out DIR""";

    String role = "", address = "", cert = "", key = "", controller = "", out = ".";
    double durationS;
    long sizeBytes;

    static Arguments parse(String[] words) {
        var found = new Arguments();
        if (words.length % 2 == 0) {
            throw Flow.fail(USAGE);
        }
        found.role = words[0];
        for (int i = 1; i < words.length; i += 2) {
            found.take(words[i], words[i + 1]);
        }
        if (!found.complete()) {
            throw Flow.fail(USAGE);
        }
        return found;
    }

    private void take(String name, String value) {
        try {
            switch (name) {
                case "--listen", "--connect" -> address = value;
                case "--cert" -> cert = value;
                case "--key" -> key = value;
                case "--controller" -> controller = value;
                case "--out" -> out = value;
                case "--duration-s" -> durationS = Double.parseDouble(value);
                case "--bytes" -> sizeBytes = Long.parseLong(value);
                case "--option" -> throw Flow.fail("unknown option %s; kwik has none", value);
                default -> throw Flow.fail("unknown argument %s%n%s", name, USAGE);
            }
        } catch (NumberFormatException error) {
            throw Flow.fail("%s %s is no number", name, value);
        }
    }

    private boolean complete() {
        return !address.isEmpty() && switch (role) {
            case "recv" -> !cert.isEmpty() && !key.isEmpty();
            case "send" -> durationS > 0 || sizeBytes > 0;
            default -> false;
        };
    }

    InetSocketAddress socketAddress() {
        int colon = address.lastIndexOf(':');
        int port = Integer.parseInt(address.substring(colon + 1));
        return new InetSocketAddress(address.substring(0, colon), port);
    }
}
