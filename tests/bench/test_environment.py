import json

from bench.environment import EnergyMeter, describe_host


def test_the_host_is_described_in_json_and_what_is_absent_is_none():
    host = json.loads(json.dumps(describe_host()))
    assert host["cores"] >= 1
    assert host["packages"]["numpy"]
    assert host["gpus"] is None or isinstance(host["gpus"], list)
    assert host["clock"]["unix_ns"] > host["clock"]["monotonic_ns"]


def test_energy_is_read_through_the_library_and_none_without_it(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert EnergyMeter.open() is None

    class Library:
        NVMLError = RuntimeError
        reads = 0

        def nvmlInit(self):  # noqa: N802
            pass

        def nvmlDeviceGetCount(self):  # noqa: N802
            return 2

        def nvmlDeviceGetHandleByIndex(self, index):  # noqa: N802
            return index

        def nvmlDeviceGetTotalEnergyConsumption(self, handle):  # noqa: N802
            self.reads += 1
            return 1000 * (handle + 1) * self.reads

    monkeypatch.setitem(sys.modules, "pynvml", Library())
    meter = EnergyMeter.open()
    assert meter is not None
    before = meter.read_j()
    assert meter.read_j() > before
