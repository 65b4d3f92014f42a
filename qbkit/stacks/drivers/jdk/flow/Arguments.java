package flow;

/** The command line. */
class Arguments {
    private static final String USAGE =
            "usage: jdk AUTHORITY send --connect IP:PORT --controller cubic|reno (--duration-s X | --bytes N) --out DIR";

    String authority = "", address = "", controller = "", out = ".";
    double durationS;
    long sizeBytes;

    static Arguments parse(String[] words) {
        var found = new Arguments();
        if (words.length < 2 || words.length % 2 > 0 || !words[1].equals("send")) {
            throw Flow.fail(USAGE);
        }
        found.authority = words[0];
        for (int i = 2; i < words.length; i += 2) {
            found.take(words[i], words[i + 1]);
        }
        if (found.address.isEmpty() || found.durationS <= 0 && found.sizeBytes <= 0) {
            throw Flow.fail(USAGE);
        }
        return found;
    }

    private void take(String name, String value) {
        try {
            switch (name) {
                case "--connect" -> address = value;
                case "--controller" -> controller = value;
                case "--out" -> out = value;
                case "--duration-s" -> durationS = Double.parseDouble(value);
                case "--bytes" -> sizeBytes = Long.parseLong(value);
                case "--option" -> throw Flow.fail("unknown option %s; jdk has none", value);
                default -> throw Flow.fail("unknown argument %s%n%s", name, USAGE);
            }
        } catch (NumberFormatException error) {
            throw Flow.fail("%s %s is no number", name, value);
        }
    }
}
