"""X12 846 and 832: separators of the envelope, loops of items, and checks of counts and numbers."""

import random
from typing import Any

import pytest

from connectors.sdk import BadData

Records = list[dict[str, Any]]


def build_interchange(
    *transactions: str, element: str = "*", component: str = ">", end: str = "~", number: str = "7"
) -> str:
    """Return an interchange of transactions written with * and ~, with the given separators."""
    blank = " " * 10
    head = f"ISA*00*{blank}*00*{blank}*ZZ*{'ACME':15}*ZZ*{'SHOP':15}*261120*0600*U*00401*{number:0>9}*0*P*"
    body = f"GS*IB*ACME*SHOP*20261120*0600*41*X*004010~{''.join(transactions)}GE*{len(transactions)}*41~IEA*1*{number:0>9}~"
    return (
        head.replace("*", element)
        + component
        + end
        + body.replace("*", element).replace(">", component).replace("~", end)
    )


def build_transaction(kind: str, *segments: str, number: str = "0001") -> str:
    """Return a transaction with the segment count."""
    return f"ST*{kind}*{number}~{''.join(f'{segment}~' for segment in segments)}SE*{len(segments) + 2}*{number}~"


def read_rows(reader: Any, content: str | bytes, **config: Any) -> Records:
    """Return every row by its headers, without blank cells."""
    return [
        {header: cell for header, cell in zip(table.headers, cells, strict=True) if cell is not None}
        for table, found in reader(content if isinstance(content, bytes) else content.encode(), **config)
        for _, cells in found
    ]


STOCK = build_transaction(
    "846", "BIA*00*SI*R1*20261120", "N1*WH*East*92*E1",
    "LIN*1*VN*A-1*UP*012345678905*IN*B-77", "QTY*33*8*EA", "QTY*17*11*EA", "SCH*25*EA***018*20261210", "SCH*5*EA***018*20270110",
    "LIN*2*SK*A-2*MG*M-2", "QTY*17*0*EA", "DTM*018*20261224",
    "LIN**VN*A-3", "N1*WH*West*92*W1", "QTY*33*1*EA", "N1*WH*North*92*N1", "QTY*33*2*EA",
    "LIN**VN*A-4", "SDQ*EA*92*E1*3*W1*4", "CTT*4",
)  # fmt: skip
PRICES = build_transaction(
    "832", "BCT*PL*2026", "CUR*SE*EUR",
    "LIN*1*VN*A-1*EN*4006381333931", "PID*F*08***Sofa, grey", "PID*F*73***Grey", "PID*F****Three seats and a footstool",
    "MEA*PD*WT*78.2*LB", "MEA*PD*LN*80*IN", "MEA*PD*HT*2.5*FT", "MEA*PK*WD*30*IN", "MEA*PD*WT*9*ZZ", "CTP*WH*UCP*199.00*1*EA",
    "CTP*WH*UCP*180.00*10*EA", "CTP*RS*MSR*507.00", "CTP*RS*MAP*449", "CTP*RS*XXX*1",
    "LIN*2*VN*A-2", "PID*F*08***Stool", "PO4*1***CTN*G*12.5*LB***20*10*8*IN", "CTP*WH*UCP*20.00*100*CA", "CTT*2",
)  # fmt: skip


@pytest.mark.parametrize(
    ("element", "component", "end"),
    [("*", ">", "~"), ("|", "^", "\n"), ("*", ":", "?"), ("\x1d", "\x1f", "\x1c"), ("+", ">", "~\r\n"), ("*", ">", "\r\n")],
)  # fmt: skip
def test_stock_with_any_separators(reader: Any, element: str, component: str, end: str) -> None:
    found = read_rows(reader, build_interchange(STOCK, element=element, component=component, end=end), currency="usd")
    arrivals = {"Incoming quantity": "25", "Incoming date": "20261210"}
    further = {"Further incoming quantity": "5", "Further incoming date": "20270110"}
    assert found == [
        {"SKU": "A-1", "GTIN": "012345678905", "Quantity": "8", "Location": "E1", **arrivals, **further},
        {"SKU": "A-2", "Manufacturer number": "M-2", "Quantity": "0", "Location": "E1", "Incoming date": "20261224"},
        {"SKU": "A-3", "Quantity": "1", "Location": "W1"},
        {"SKU": "A-3", "Quantity": "2", "Location": "N1"},
        {"SKU": "A-4", "Quantity": "3", "Location": "E1"},
        {"SKU": "A-4", "Quantity": "4", "Location": "W1"},
    ]
    assert not reader.context.reports


def test_prices(reader: Any) -> None:
    assert read_rows(reader, build_interchange(PRICES)) == [
        {
            "SKU": "A-1", "GTIN": "4006381333931", "Name": "Sofa, grey", "Colour": "Grey", "Currency": "eur",
            "Description": "Sofa, grey\nThree seats and a footstool", "Cost": "199.00", "List price": "507.00",
            "Minimum advertised price": "449", "Weight": "78.2 lb", "Length": "80 in", "Height": "2.5 ft", "Package width": "30 in",
        },
        {"SKU": "A-2", "Name": "Stool", "Currency": "eur", "Package weight": "12.5 lb", "Package length": "20 in",
         "Package width": "10 in", "Package height": "8 in"},
    ]  # fmt: skip
    details = " ".join(report.detail for report in reader.context.reports)
    assert (
        "larger quantities" in details
        and "without a known unit" in details
        and "XXX" in details
        and len(reader.context.reports) == 3
    )


def test_several_prices_of_an_item(reader: Any) -> None:
    """Of several prices for one column the more reliable is used in any order, and the others are reported."""
    prices = ["CTP*RS*RES*450", "CTP*RS*RTL*500", "CTP*RS*MSR*507", "CTP*WH*UCP*199", "CTP*WH*CON*180"]
    for order in (prices, prices[::-1]):
        item = read_rows(reader, build_interchange(build_transaction("832", "LIN*1*VN*A-1", *order)))[0]
        assert [item[name] for name in ("Cost", "List price", "Price")] == ["199", "507", "450"]
        assert any(
            "several prices for the column Cost; the first of UCP" in one.detail for one in reader.context.reports
        )


def test_several_transactions_and_interchanges(reader: Any) -> None:
    other = build_transaction("997", "AK1*IB*1", number="0009")
    content = build_interchange(PRICES, STOCK, other) + "\r\n" + build_interchange(STOCK, end="\n", number="8")
    tables = reader(content.encode())
    assert [(table.sheet, len(found)) for table, found in tables] == [("832", 2), ("846", 12)]
    assert "'997'" in reader.context.reports[0].detail


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("SE*20*", "SE*19*", "SE states 19 segments, but 20 were received"),
        ("SE*20*0001", "SE*20*0002", "SE has the control number 0002"),
        ("GE*1*41", "GE*3*41", "GE states 3 transactions, but 1 were received"),
        ("GE*1*41", "GE*1*42", "GE has the control number 42"),
        ("IEA*1*000000007", "IEA*1*000000070", "IEA has the control number 000000070"),
        ("CTT*4", "CTT*5", "CTT counts 5 items, but 4 were received"),
        ("QTY*33*8*EA", "QTY*33*8*CA", "may contain several items"),
        ("QTY*33*8*EA", "QTY*02*8*EA", "with the qualifier 02"),
    ],
)
def test_irregularities_are_reported(reader: Any, old: str, new: str, message: str) -> None:
    content = build_interchange(STOCK)
    assert old in content
    found = read_rows(reader, content.replace(old, new))
    assert len(found) == 6
    assert [message in report.detail for report in reader.context.reports] == [True], reader.context.reports
    assert reader.context.reports[0].line


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (build_interchange(STOCK)[:-30], "incomplete"),
        (build_interchange(STOCK).replace("IEA*1*000000007~", ""), "incomplete"),
        (build_interchange(STOCK).replace("SE*20*0001~", ""), "does not match the open envelope"),
        (build_interchange(STOCK).replace("ST*846*0001~", ""), "does not match the open envelope"),
        (build_interchange(build_transaction("850", "BEG*00")), "'850'"),
        (build_interchange(STOCK)[:80], "damaged"),
        (build_interchange(STOCK) + "and more", "ISA is missing"),
    ],
)
def test_invalid_interchanges_are_refused(reader: Any, content: str, message: str) -> None:
    with pytest.raises(BadData, match=message):
        reader(content.encode())


def test_unpadded_elements_are_read(reader: Any) -> None:
    """Some partners omit the padding of the first segment."""
    content = build_interchange(STOCK).replace(" ", "")
    assert len(read_rows(reader, content)) == 6


def test_damaged_at_random(reader: Any) -> None:
    """Any truncation or change yields rows or an error message, never another error."""
    whole, chance = build_interchange(PRICES, STOCK).encode(), random.Random(5)
    for _ in range(400):
        at = chance.randrange(len(whole))
        piece = bytes(chance.randrange(256) for _ in range(chance.randrange(4)))
        damaged = whole[:at] + piece + whole[at + chance.randrange(40) :]
        try:
            reader(damaged)
        except BadData as error:
            assert str(error)
