"""Packets under way: those sent and neither acknowledged nor declared lost."""


class Flight:
    """Of one packet number space; its attributes bear the names of sender.csv's columns."""

    def __init__(self):
        self.bytes_in_flight = self.lost_packets = self.spurious_losses = self.retransmits = 0
        self.latest_rtt_ms = None
        self.packets = {}
        """Number → (bytes, time sent in ms), in order of sending."""
        self.declared_lost = set()

    def sent(self, number, size_bytes, time_ms, again):
        """A packet went out; ``again``: it carries something for another time."""
        self.packets[number] = (size_bytes, time_ms)
        self.bytes_in_flight += size_bytes
        self.retransmits += again

    def acknowledged(self, smallest, largest, missing, time_ms):
        """An ACK frame came for all from smallest to largest but the missing."""
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
