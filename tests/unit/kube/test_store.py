from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ironbell.kube.cache.store import Store
from ironbell.kube.reconciler import Index
from ironbell.kube.testing.example import SLOT, Slot

COLOURS = Index(SLOT, "colour", lambda slot: [slot.metadata.labels["colour"]])
STEPS = st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["red", "blue", "gone", "read"])), max_size=60)


@given(STEPS)
def test_an_index_gives_its_objects_in_order_whatever_came_and_went(steps: list[tuple[int, str]]) -> None:
    store: Store[Slot] = Store()
    store.declare(COLOURS)
    colours: dict[str, str] = {}
    for number, step in steps:
        name = f"s{number}"
        if step == "gone":
            store.remove(("n", name))
            colours.pop(name, None)
        elif step != "read":
            body = f'{{"metadata":{{"name":"{name}","namespace":"n","labels":{{"colour":"{step}"}}}}}}'
            store.put(("n", name), SLOT.decode(body.encode()))
            colours[name] = step
        for colour in ("red", "blue"):
            found = [slot.metadata.name for slot in store.indexed("colour", colour)]
            assert found == sorted(name for name, held in colours.items() if held == colour)
