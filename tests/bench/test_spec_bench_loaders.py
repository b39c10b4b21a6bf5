"""The loaders of a Spec-Bench checkout's models, against stand-ins of its modules."""

import sys
from types import SimpleNamespace

import pytest

from bench import spec_bench_loaders


class Model:
    """Stands for every class of a checkout: it keeps what it was made from."""

    def __init__(self, *args, **kwargs):
        self.args, self.kwargs = args, kwargs

    @classmethod
    def from_pretrained(cls, *args, **kwargs):
        return cls(*args, **kwargs)

    def eval(self):
        return self

    def get_tokenizer(self):
        return "tokenizer"


@pytest.fixture
def checkout(monkeypatch):
    """The modules of a checkout, and those of torch and transformers that the loaders use."""
    mixin = type("GenerationMixin", (), {"_assisted_decoding": None})
    lade = SimpleNamespace(calls=[])
    lade.augment_all = lambda: lade.calls.append("augmented")
    lade.config_lade = lambda **sizes: lade.calls.append(sizes)
    modules = {
        "torch": SimpleNamespace(float16="half"),
        "transformers": SimpleNamespace(
            AutoModelForCausalLM=Model,
            AutoTokenizer=SimpleNamespace(from_pretrained=lambda folder: f"tokenizer of {folder}"),
            GenerationMixin=mixin,
        ),
        "model": SimpleNamespace(__path__=[]),
        "model.eagle.ea_model": SimpleNamespace(EaModel=Model),
        "model.eagle.choices": SimpleNamespace(mc_sim_7b_63=[[0], [1]]),
        "model.medusa.medusa_model": SimpleNamespace(MedusaModel=Model),
        "model.medusa.medusa_choices": SimpleNamespace(mc_sim_7b_63=[[0]]),
        "model.sps.decoding": SimpleNamespace(assisted_decoding="the checkout's loop"),
        "model.pld.pld": SimpleNamespace(greedy_search_pld=lambda self, ids: (self, ids)),
        "model.rest.rest.model.rest_model": SimpleNamespace(RestModel=Model),
        "draftretriever": SimpleNamespace(Reader=lambda index_file_path: f"reader of {index_file_path}"),
        "model.lade.utils": lade,
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return SimpleNamespace(mixin=mixin, lade=lade)


def test_eagle_and_medusa_are_made_of_target_and_heads_and_tell_their_tree(checkout):
    model, tokenizer, more = spec_bench_loaders.load_eagle("T", draft="D")
    assert model.kwargs["base_model_path"], model.kwargs["ea_model_path"] == ("T", "D")
    assert model.kwargs["torch_dtype"] == "half"
    assert (tokenizer, more) == ("tokenizer", {"tree_choices": [[0], [1]], "logits_processor": None})
    model, _, more = spec_bench_loaders.load_medusa("T", draft="D")
    assert (model.args, model.kwargs["medusa_num_heads"], more) == (("D", "T"), 4, {"medusa_choices": [[0]]})


def test_sps_decodes_with_the_checkouts_loop_whatever_transformers_calls_it(checkout):
    _, tokenizer, more = spec_bench_loaders.load_sps("T", draft="D")
    assert checkout.mixin._assisted_decoding == "the checkout's loop"
    assert (tokenizer, more["drafter"].args) == ("tokenizer of T", ("D",))
    del checkout.mixin._assisted_decoding
    spec_bench_loaders.load_sps("T", draft="D")
    assert checkout.mixin.assisted_decoding == "the checkout's loop"


def test_rest_looks_up_the_longest_suffix_first(checkout):
    _, _, more = spec_bench_loaders.load_rest("T", datastore="index")
    assert more == {"datastore": "reader of index", "num_draft": 64, "token_spans": list(range(16, 1, -1))}


def test_pld_and_lookahead_change_the_model_that_they_return(checkout):
    model, _, more = spec_bench_loaders.load_pld("T")
    assert (model.greedy_search_pld("ids"), more) == ((model, "ids"), {})
    spec_bench_loaders.load_lookahead("T")
    sizes = {"LEVEL": 5, "WINDOW_SIZE": 7, "GUESS_SET_SIZE": 7, "DEBUG": 0, "USE_FLASH": 0, "DIST_WORKERS": 1}
    assert checkout.lade.calls == ["augmented", sizes]
