"""How programs are built: cargo, Go, Maven, C, Debian's packages, and what runs beside them."""
