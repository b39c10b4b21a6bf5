"""Every system of the papers: its engine, exact command, kinds and published figures, one TOML file each."""
