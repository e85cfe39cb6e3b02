from ordercast.wire.lru_map import REMEMBERED, LruMap


def test_what_was_used_longest_ago_is_forgotten() -> None:
    memory: LruMap[int, str] = LruMap()
    for key in range(REMEMBERED):
        memory.keep(key, "first")
    assert memory.recall(0) == "first"
    memory.keep(1, "second")
    for key in range(REMEMBERED, 2 * REMEMBERED - 2):
        memory.keep(key, "first")
    assert len(memory) == REMEMBERED
    assert (memory.recall(0), memory.recall(1), memory.recall(2)) == ("first", "second", None)
