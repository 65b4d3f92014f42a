"""aioquic before 1.2 has a constant where later releases have an enumeration of packet types."""

import sys
from types import SimpleNamespace

from aioquic.quic import packet

packet.QuicPacketType = SimpleNamespace(INITIAL=packet.PACKET_TYPE_INITIAL)

from aioquic_flow.__main__ import main  # noqa: E402 (imports that name)

if __name__ == "__main__":
    sys.exit(main())
