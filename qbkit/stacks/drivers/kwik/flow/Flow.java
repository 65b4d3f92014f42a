package flow;

import java.net.DatagramSocket;
import java.net.SocketException;

/**
 * Sends and receives one flow of kwik by the IETF perf protocol (draft-banks-quic-performance), for
 * qbkit; see qbkit/stacks/base.py for its command line.
 */
public class Flow {
    static final String PROTOCOL = "perf";
    static final int HEADER_BYTES = 8; // of a perf stream: how many bytes the client wants back
    static final int LOST_CONNECTION = 3; // exit status, see docs/howto/own-stack.md
    static final int SOCKET_BYTES = 32 << 20;

    public static void main(String[] words) throws Exception {
        var arguments = Arguments.parse(words);
        if (arguments.role.equals("recv")) {
            new Receiver(arguments).run();
        } else {
            new Sender(arguments).run();
        }
    }

    /** A socket whose buffers never limit the flow. */
    static DatagramSocket widen(DatagramSocket socket) throws SocketException {
        socket.setReceiveBufferSize(SOCKET_BYTES);
        socket.setSendBufferSize(SOCKET_BYTES);
        return socket;
    }

    /** On SIGTERM, ends the program as {@link #end} does; Java itself would exit with 143. */
    static void onSignal(Runnable finish) {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> end(finish, "")));
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
        System.out.flush();
        Runtime.getRuntime().halt(problem.isEmpty() ? 0 : 1);
    }

    /** The same for a connection that ended before its time, which was reported. */
    static synchronized void lost(Runnable finish) {
        finish.run();
        System.out.flush();
        Runtime.getRuntime().halt(LOST_CONNECTION);
    }
}
