"""The throughput split: real prompts of an exact length, in three entropy tiers."""
