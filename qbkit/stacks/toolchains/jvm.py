"""How Java programs run in a guest."""

from __future__ import annotations

JVM_FLAGS = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # the second compiler costs more than its code saves
    "-XX:-UsePerfData",
    "-Djava.net.preferIPv4Stack=true",
)
