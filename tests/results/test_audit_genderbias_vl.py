"""The authors' repository is not at hand: files of its layout are made here, so that Table 1 follows from them."""

import csv

import pytest

from truegap.errors import UserError
from truegap.results.audit import Verdict, audit
from truegap.results.audit_genderbias_vl_files import FOLDERS
from truegap.results.published import rows

PAIRS = 20
HEADER = (
    "occtm,occtf,occtm_ratio,occtf_ratio,similarity,occtm_bias,occtf_bias,occtm_acc,occtf_acc,bias,acc,ipss,acc_delta"
)
SHORT = "occtm,occtf,bias,acc,ipss,acc_delta"


def write(path, table):
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = HEADER.split(",")
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        names = ({"occtm": f"man {place}", "occtf": f"woman {place}"} for place in range(len(table)))
        rows_ = [dict.fromkeys(columns, "1.00") | pair | row for pair, row in zip(names, table, strict=True)]
        writer.writerows(rows_)


def spread(mean):
    """Values around a mean."""
    return [mean + (1 if place % 2 else -1) * 0.25 for place in range(PAIRS)]


def biases(mean, *extremes):
    """Signed biases: the extremes, and the rest so that sizes have this mean."""
    rest = (PAIRS * mean - sum(map(abs, extremes))) / (PAIRS - len(extremes))
    assert rest >= 0
    return [*extremes, *([rest, -rest] * PAIRS)[: PAIRS - len(extremes)]]


def merged(home, model, context, kind="merge_bias_probability"):
    name = FOLDERS.get(model, model)
    return home / "bias_metric" / "bias_merge_swap_test" / kind / name / f"{name}_{context.upper()}bias.csv"


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    home = tmp_path_factory.mktemp("repository")
    for row in rows("genderbias_vl"):
        for context in ("vl", "v", "l"):
            want = {each: float(row[f"{context}_{each}"]) for each in ("ipss", "b_ovl", "b_max", "acc", "delta_acc")}
            # Kosmos-2, VL: the largest size is of a negative bias
            extremes = (0.93, -1.37) if (row["model"], context) == ("Kosmos-2", "vl") else (want["b_max"],)
            columns = {
                "bias": biases(want["b_ovl"], *extremes),
                "acc": spread(want["acc"]),
                "ipss": spread(want["ipss"]),
                "acc_delta": spread(want["delta_acc"]),
            }
            table = [
                dict(zip(columns, (f"{v:.6f}" for v in row), strict=True))
                for row in zip(*columns.values(), strict=True)
            ]
            write(merged(home, row["model"], context), table)
    for row in rows("genderbias_vl_outcome_v"):
        columns = {
            "bias": biases(float(row["b_ovl_o"]), float(row["b_max_o"])),
            "acc": spread(float(row["acc"])),
            "ipss": spread(float(row["ipss_o"])),
        }
        table = [
            dict(zip(columns, (f"{v:.6f}" for v in row), strict=True)) for row in zip(*columns.values(), strict=True)
        ]
        if row["model"] != "EVA-G":
            write(merged(home, row["model"], "v", "merge_bias_outcome"), table)
    orders = home / "bias_metric" / "bias_results" / "LAMM"
    # The orders need not list the pairs in the same order
    for swap, accuracy in (("", {"a": 50.0, "b": 40.0}), ("_swap", {"b": 0.0, "a": 80.0})):
        table = [{"occtm": name, "acc": value, "occtf": "c"} for name, value in accuracy.items()]
        write(orders / f"VLbias{swap}" / "occ_bias_pair_probablity_difference.csv", table)
    return home


@pytest.fixture(scope="module")
def found(complete):
    return {each.key: each for each in audit(complete)}


def test_all_225_numbers_are_recomputed(found):
    table = found["genderbias-vl-files"]
    assert (len(table.cells), table.verdict) == (225, Verdict.FOLLOWS)
    assert table.found == "225 of 225 follow; 225 to the last digit; files of 20 pairs, where the paper has 486"
    assert {"genderbias-vl-table-1", "genderbias-vl-internlm-acc", "genderbias-vl-b-max"}.isdisjoint(found)
    accuracy = next(each for each in table.cells if each.where == "InternLM-XC2, VL, acc")
    assert (accuracy.printed, accuracy.value) == ("77.77", pytest.approx(77.77))
    ipss = next(each for each in table.cells if each.where == "RLHF-V, V, ipss")
    assert (ipss.printed, ipss.value) == ("63.83", pytest.approx(63.83))


def test_b_max_is_the_signed_maximum(found):
    b_max = found["genderbias-vl-b-max-abs"]
    assert [each.where for each in b_max.failing] == ["Kosmos-2, VL, b_max"]
    assert "Kosmos-2, VL: printed 0.93, absolute 1.37" in b_max.found


def test_ipss_of_the_merged_scores_is_another_number(found):
    assert found["genderbias-vl-ipss-merged"].verdict is Verdict.FAILS


def test_delta_acc_of_a_pair_needs_both_orders(found):
    cells = {each.where: each for each in found["genderbias-vl-delta-acc"].cells}
    assert cells["LAMM, VL, delta_acc"].value == 35
    assert cells["LAMM, V, delta_acc"].verdict is Verdict.OPEN


def test_the_outcome_difference(found):
    outcome = found["genderbias-vl-outcome-files"]
    assert outcome.found == "16 of 20 follow, 4 cannot be checked"


def test_any_folder_of_the_repository_will_do(complete):
    whole = audit(complete)
    assert audit(complete / "bias_metric") == whole
    for part in ("bias_merge_swap_test", "bias_merge_swap_test/merge_bias_probability", "bias_results"):
        assert audit(complete / "bias_metric" / part) == whole, part


def test_the_rounding_of_the_files_is_no_fault(complete, tmp_path):
    # Given a mean of 52.155 that was 52.1549 before the files were rounded, when 52.15 is printed, then it follows
    path = merged(tmp_path, "LLaVA1.5-7B", "vl")
    write(path, [{"bias": "1.85", "acc": value, "ipss": "51.58", "acc_delta": "95.66"} for value in ("52.15", "52.17")])
    table = next(each for each in audit(tmp_path) if each.key == "genderbias-vl-files")
    accuracy = next(each for each in table.cells if each.where == "LLaVA1.5-7B, VL, acc")
    assert (accuracy.value, accuracy.verdict) == (pytest.approx(52.16), Verdict.FOLLOWS)
    assert "3 to the last digit" in table.found
    assert [each.where for each in table.failing] == ["LLaVA1.5-7B, VL, b_max"]


def test_a_part_says_what_is_missing(complete, tmp_path):
    import shutil

    # Given one model's folder of the merged files, and nothing else
    part = tmp_path / "merge_bias_probability"
    shutil.copytree(merged(complete, "RLHF-V", "vl").parent, tmp_path / "bias_merge_swap_test" / part.name / "RLHFV")
    found = {each.key: each for each in audit(tmp_path)}
    table = found["genderbias-vl-files"]
    assert table.found.startswith("15 of 225 follow, 210 cannot be checked; 15 to the last digit")
    assert "no file of LLaVA1.5-7B (VL), LLaVA1.5-7B (V)" in table.found
    assert table.found.endswith("and 36 more")
    # and where there are only files of single orders, they say what they can
    shutil.rmtree(tmp_path / "bias_merge_swap_test")
    shutil.copytree(complete / "bias_metric" / "bias_results", tmp_path / "bias_results")
    found = {each.key: each for each in audit(tmp_path)}
    assert found["genderbias-vl-files"].verdict is Verdict.OPEN
    assert sum(each.verdict is not Verdict.OPEN for each in found["genderbias-vl-delta-acc"].cells) == 1


def test_a_changed_file_shows(complete, tmp_path):
    import shutil

    shutil.copytree(complete, tmp_path / "copy")
    path = merged(tmp_path / "copy", "Otter", "l")
    path.write_text(path.read_text().replace(",60.6", ",61.6", 3))
    table = next(each for each in audit(tmp_path / "copy") if each.key == "genderbias-vl-files")
    assert [each.where for each in table.failing] == ["Otter, L, acc"]
    path.unlink()
    table = next(each for each in audit(tmp_path / "copy") if each.key == "genderbias-vl-files")
    assert table.found.startswith("220 of 225 follow, 5 cannot be checked; 220 to the last digit")
    assert table.found.endswith("no file of Otter (L)")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("occtm,occtf,bias,acc,ipss\na,b,1,2,3\n", r"Otter_Lbias\.csv: lacks the column acc_delta; is it the authors'"),
        (f"{SHORT}\na,b,1,2,3,4\na,c,1,nan,3,4\n", r"Otter_Lbias\.csv line 3: acc is 'nan', not a number"),
        (f"{SHORT}\na,b,1,2,3\n", r"line 2: acc_delta is '', not a number"),
        (f"{SHORT}\na,b,1,1e999999999,3,4\n", r"acc is '1e999999999', not a number"),
        (f"{SHORT}\na,b,1,200,3,4\n", r"line 2: acc is 200, no score in percent"),
        (f"{SHORT}\na,b,1,2,-3,4\n", r"line 2: ipss is -3, no score in percent"),
        (f"{SHORT}\na,b,1,2,3,4\na,b,1,2,3,4\n", r"line 3: the pair a / b stands there twice"),
        (f"{SHORT}\na,b,1,2,3,4\n{'x' * 200_000},b,1,2,3,4\n", r"cannot be read after line 2: field larger"),
        (f"{SHORT}\n", r"holds no pair"),
        (b"\xff\xfe\x00", r"cannot be read"),
    ],
)
def test_a_broken_file_is_one_line(tmp_path, content, message):
    path = merged(tmp_path, "Otter", "l")
    path.parent.mkdir(parents=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=message) as caught:
        audit(tmp_path)
    assert "\n" not in str(caught.value)


def test_another_folder_is_the_users_mistake(tmp_path):
    with pytest.raises(UserError, match="holds none of the authors' result files"):
        audit(tmp_path)


def test_a_pair_in_one_order_only_is_refused(complete, tmp_path):
    import shutil

    shutil.copytree(complete, tmp_path / "copy")
    path = tmp_path / "copy" / "bias_metric" / "bias_results" / "LAMM" / "VLbias_swap"
    write(path / "occ_bias_pair_probablity_difference.csv", [{"occtm": "a", "occtf": "c", "acc": 1}])
    with pytest.raises(UserError, match=r"the pair b / c is only in one order; give both orders of each pair"):
        audit(tmp_path / "copy")
