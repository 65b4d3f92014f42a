package tech.kwik.core.impl;

import tech.kwik.core.QuicConnection;
import tech.kwik.core.cc.NewRenoCongestionController;

/** The controller of a connection, which kwik shows only to classes of this package. */
public class Controllers {
    public static NewRenoCongestionController of(QuicConnection connection) {
        var sender = ((QuicConnectionImpl) connection).getSender();
        return (NewRenoCongestionController) sender.getCongestionController();
    }
}
