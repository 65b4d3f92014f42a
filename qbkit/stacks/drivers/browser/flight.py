"""Packets in flight: sent, and neither acknowledged nor declared lost."""


class Flight:
    """Packets in flight of one number space; attributes are named as columns of sender.csv."""

    def __init__(self):
        self.bytes_in_flight = self.lost_packets = self.spurious_losses = self.retransmits = 0
        self.latest_rtt_ms = None
        self.packets = {}
        """Number → (bytes, time sent in ms), in order of sending."""
        self.declared_lost = set()

    def sent(self, number, size_bytes, time_ms, again):
        """A packet was sent; ``again``: it retransmits something."""
        self.packets[number] = (size_bytes, time_ms)
        self.bytes_in_flight += size_bytes
        self.retransmits += again

    def acknowledged(self, smallest, largest, missing, time_ms):
        """An ACK frame acknowledged smallest to largest, except the missing."""
        missing = set(missing)
        found = []
        for number in self.packets:
            if number > largest:
                break
            if number >= smallest and number not in missing:
                found.append(number)
        for number in found:
            size_bytes, sent_ms = self.packets.pop(number)
            self.bytes_in_flight -= size_bytes
            if number == largest:
                self.latest_rtt_ms = round(time_ms - sent_ms, 3)
        late = {n for n in self.declared_lost if smallest <= n <= largest and n not in missing}
        self.spurious_losses += len(late)
        self.declared_lost -= late

    def lost(self, number):
        """A packet was declared lost."""
        size_bytes, _ = self.packets.pop(number, (0, 0.0))
        self.bytes_in_flight -= size_bytes
        self.lost_packets += 1
        self.declared_lost.add(number)
