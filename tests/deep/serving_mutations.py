"""Mutations of the server: what its clients, and those whose texts they are, would suffer from."""

from mutation import Mutation

SERVING = (
    Mutation(
        name="serving: a client that has left costs on",
        file="seqtool/serving/connections.py",
        old="                task.cancel()\n",
        new="                pass\n",
        tests=("test_serving_operations.py::test_a_client_that_leaves_is_counted_and_costs_no_more",),
    ),
    Mutation(
        name="serving: long requests may fill the whole queue",
        file="seqtool/serving/batcher.py",
        old="left = self._max_queue * 3 // 4 - n_waiting",
        new="left = self._max_queue - n_waiting",
        tests=("test_serving_batches.py",),
    ),
    Mutation(
        name="serving: each long request takes a whole portion of the queue",
        file="seqtool/serving/batcher.py",
        old="min(PORTION, max(1, left // 4))",
        new="min(PORTION, left)",
        tests=("test_serving_batches.py",),
    ),
    Mutation(
        name="serving: short requests lead no batch before long ones",
        file="seqtool/serving/batcher.py",
        old="SHORT if len(wanted) <= SHORT_REQUEST else LONG",
        new="LONG",
        tests=("test_serving_batches.py",),
    ),
    Mutation(
        name="serving: texts are in the log though nobody asked for them",
        file="seqtool/serving/app.py",
        old="if self.settings.log_texts:\n            notes",
        new="if texts:\n            notes",
        tests=("test_serving_operations.py::test_the_log_has_every_request_and_no_text",),
    ),
    Mutation(
        name="serving: a slow head is waited for",
        file="seqtool/serving/connections.py",
        old="self.loop.call_later(self.settings.header_timeout, self._refuse, TOO_SLOW)",
        new="self.loop.call_later(1000, self._refuse, TOO_SLOW)",
        tests=("test_serving_limits.py::test_a_head_that_comes_too_slowly_is_not_waited_for",),
    ),
)
