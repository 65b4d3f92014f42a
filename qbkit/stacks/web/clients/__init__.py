"""Web clients, one file each; `qbkit.stacks.web.base` describes their interface."""
