package flow;

import java.net.http.HttpRequest.BodyPublisher;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow.Subscriber;
import java.util.concurrent.Flow.Subscription;
import java.util.concurrent.Semaphore;

/** The body of a request, each part of which leaves when it is written. */
class Body implements BodyPublisher, Subscription {
    private final CompletableFuture<Subscriber<? super ByteBuffer>> client = new CompletableFuture<>();
    private final Semaphore room = new Semaphore(0);

    /** Returns once the connection stands. */
    void awaitConnection() {
        client.join();
    }

    /** Hands over so many zeroes once the client has room for them; it keeps 64 KiB at most. */
    void write(int size) {
        room.acquireUninterruptibly();
        client.join().onNext(ByteBuffer.allocate(size));
    }

    void end() {
        client.join().onComplete();
    }

    @Override
    public long contentLength() {
        return -1; // not known
    }

    @Override
    public void subscribe(Subscriber<? super ByteBuffer> subscriber) {
        subscriber.onSubscribe(this);
        client.complete(subscriber);
    }

    @Override
    public void request(long parts) {
        room.release((int) parts);
    }

    @Override
    public void cancel() {} // the future of the response says why
}
