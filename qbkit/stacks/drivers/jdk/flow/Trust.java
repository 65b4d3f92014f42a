package flow;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** Believes what the authority of a PEM file signed; the JDK's QUIC takes no checks of our own. */
class Trust {
    static SSLContext in(Path authority) {
        try (var pem = Files.newInputStream(authority)) {
            var keys = KeyStore.getInstance(KeyStore.getDefaultType());
            keys.load(null);
            var certificate = CertificateFactory.getInstance("X.509").generateCertificate(pem);
            keys.setCertificateEntry("authority", certificate);
            var factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            factory.init(keys);
            var context = SSLContext.getInstance("TLS");
            context.init(null, factory.getTrustManagers(), null);
            return context;
        } catch (GeneralSecurityException | IOException error) {
            throw Flow.fail("cannot use the certificate %s: %s", authority, error.getMessage());
        }
    }
}
