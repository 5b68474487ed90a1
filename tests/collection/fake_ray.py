"""As much of Ray as distributed runs use, in this process: workers run here, and may be lost."""

import sys
import types


class RayError(Exception):
    """What Ray raises when it gives up on a run."""


class GetTimeoutError(RayError):
    """No answer in time."""


class WorkerLost(BaseException):
    """Kills the worker that raises it, as a signal would: Ray starts another and tries again."""


class _Remote:
    """`ray.remote(...)(thing).remote(...)`: a call, or an actor whose methods have `.remote`."""

    def __init__(self, call):
        self.remote = call


class _Actor:
    def __init__(self, instance):
        self._instance = instance

    def __getattr__(self, name):
        return _Remote(getattr(self._instance, name))


class _Rows:
    """A data set of Ray, one row a block."""

    def __init__(self, items):
        self.items = items

    def map_batches(self, worker, fn_constructor_args, **resources):
        self.make = lambda: worker(*fn_constructor_args)
        return self

    def iter_rows(self):
        worker = self.make()
        for item in self.items:
            batch = {name: [value] for name, value in item.items()}
            while True:
                try:
                    answer = worker(batch)
                    break
                except WorkerLost:
                    worker = self.make()
            yield {name: values[0] for name, values in answer.items()}


def install(monkeypatch, nodes=({"CPU": 4.0},), initialized=False):
    """Puts the fake in place of Ray; `calls` of what it returns lists starts and stops."""
    ray, data = types.ModuleType("ray"), types.ModuleType("ray.data")
    ray.calls = []
    ray.exceptions = types.SimpleNamespace(RayError=RayError, GetTimeoutError=GetTimeoutError)
    ray.is_initialized = lambda: initialized
    ray.init = lambda **options: ray.calls.append(("init", options))
    ray.shutdown = lambda: ray.calls.append(("shutdown", {}))
    ray.nodes = lambda: [{"Resources": resources, "Alive": True} for resources in nodes]
    total = {kind: sum(node.get(kind, 0) for node in nodes) for kind in ("CPU", "GPU")}
    ray.cluster_resources = lambda: total
    ray.cancel = lambda reference, force: ray.calls.append(("cancel", {}))

    def remote(num_cpus=0, num_gpus=0, **options):
        fits = any(
            node.get("CPU", 0) >= num_cpus and node.get("GPU", 0) >= num_gpus for node in nodes
        )

        def make(thing):
            if isinstance(thing, type):
                return _Remote(lambda: _Actor(thing()))
            return _Remote(lambda: thing() if fits else GetTimeoutError())

        return make

    def get(reference, timeout):
        if isinstance(reference, GetTimeoutError):
            raise reference
        return reference

    ray.remote, ray.get, ray.data = remote, get, data
    data.from_items = lambda items, override_num_blocks: _Rows(items)
    context = types.SimpleNamespace(enable_progress_bars=True)
    data.DataContext = types.SimpleNamespace(get_current=lambda: context)
    data.context = context
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.data", data)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # as workers set it: put back afterwards
    return ray
