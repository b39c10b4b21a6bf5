"""Engines that run in this very process, behind a loopback HTTP server; each verify step is told as one event.

It runs in the environment of the model's user: nothing here imports another package of ours, and nothing but the
standard library before a model is loaded. Python >= 3.10.
"""
