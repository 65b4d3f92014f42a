package flow;

/**
 * Uploads one flow by HTTP/3 with the JDK's own client, for qbkit; see qbkit/stacks/base.py for its
 * command line. quic-go's server receives it.
 */
public class Flow {
    private static final int LOST_CONNECTION = 3; // exit status, see docs/howto/own-stack.md

    public static void main(String[] words) {
        try {
            new Sender(Arguments.parse(words)).run();
        } catch (RuntimeException error) {
            throw fail("the driver failed: %s", error);
        }
    }

    /** Ends the program with one sentence on what was wrong. */
    static RuntimeException fail(String format, Object... words) {
        end(() -> {}, String.format(format, words));
        return new IllegalStateException("unreachable");
    }

    /**
     * Runs {@code finish} and ends the program, with status 1 if there is a problem. It never returns,
     * so that a thread whose connection is closed by it cannot report that as a problem.
     */
    static synchronized void end(Runnable finish, String problem) {
        finish.run();
        if (!problem.isEmpty()) {
            System.err.println(problem);
        }
        Runtime.getRuntime().halt(problem.isEmpty() ? 0 : 1);
    }

    /** The same for a connection that ended before its time, which {@code finish} reports. */
    static synchronized void lost(Runnable finish) {
        finish.run();
        Runtime.getRuntime().halt(LOST_CONNECTION);
    }
}
