package flow;

import java.io.InputStream;

/** So many bytes to upload. */
class Zeroes extends InputStream {
    private long left;

    Zeroes(long sizeBytes) {
        left = sizeBytes;
    }

    @Override
    public int read() {
        return left-- > 0 ? 0 : -1;
    }

    @Override
    public int read(byte[] target, int offset, int length) {
        if (left <= 0) {
            return -1;
        }
        int size = (int) Math.min(left, length); // the buffer holds zeroes already
        left -= size;
        return size;
    }
}
