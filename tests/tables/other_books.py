"""Workbooks of other programs than today's Excel, as bytes."""

import base64
import io
import zipfile
import zlib
from xml.sax.saxutils import escape

# An .xls that xlwt 1.3 wrote. Sheet "items": a line above the header; ids 000 to 002; titles;
# shares of 10, 20 and 30 %; days from 2024-01-02 on; false, true, true; an empty column; 30 hours
# each. Sheet "details": 000 has 100 pages, 001 has 101.5. Sheet "hid": hidden.
XLS = zlib.decompress(
    base64.b85decode(
        "c-rk)OGuPa6#nl2n3u27EYN5e1ns3UR*N<|6_krmtQJKCH8npusAK$2lr4Ihn;?i<^&k)|Xk)dpcNA?}1V$}_AW&"
        "OHtDvZbI-Ps|JL6b?kx+&*XZX*5&$;)WbMATEd*^>STsqQ!yK)piKqGWarv32b@B}^n3=stNr_-{TdHd)|=V4BP-"
        "$#M;n0Qe1!YgAa<2?!uw~VKRfiZe^;~-kPl2&*YVI$iR6ViqT;i25qC?l^BE=C1gR>pWg;{}Xw^5}<**E8oV;|3Z"
        "#B6eXo+OlGu%H*9|755br7P!N6-ZG~i3-MfL^6_)R8EayLorrbJ`;L%NhyhR<G+9Z@mb4$&U;vR-k?N39g6jwXJp"
        "^@~optf}2+Ap62Jj^v20mvth9}`Xe|Gr-#Q!#(@BIbeM-g@7`zg3?`~X({#J`|XPMkn`uaLFVhaz}Q*<&J+vO2r_"
        "P=b&=3&@DLm5L=gh*f|wzf3h9ZHf3e&QQtn86rzA5vS>?M5@E0cXwONwn+ZrHY-VeUF|wx**4+$A-f1@wG;cT?r<"
        "U*ZjSX3Hxh|ZQf{$QG(G$w9AQ>{E~}ndt8-baNzuXB0jrw|;7C9oYrG8xr)`5pyfqXOj?;={yOcMGAUSdT#-~@!`"
        "&y%Wm~(=UKIed}md-&MC*=&9TnxuGjz54EJYyx}Q!I5cw<{T!(@1*Pv@TSQ&AmM4H22n!o;3`wqf2wz%c$M=aqHb"
        "s-}~rtY7aJz9xWey6YWP81vXCe<*ygDqE=kGDB)f-^A>6&eaE=sr%lzT1$kXwq}45;1QV1Nl2^(MhmzhASxQsBaw"
        "wfBJxdux8Cl9C%FI$8qC85g<I(9_!CJj)gyv$G#v^=6q7yZFX?eu!)CjNSwGBO!2a2irh-dIhJXk_)Q`su7GEh+q"
        "352Nsm?i~!C`ez0V}R~rfX)U4lmR*$P@oLZ*?{eA!2PTNIvXG$<?GYr8!qw<mS3pk8!Vsd0y?Fd!SdItw2<-)lDG"
        "hmNte`Q<Y+Roni{n-3`xJysW}C+Q5KG)wK-ZAj_qy<nkfsgcZze$NOLVC=_eTzr;N^vsr1%d(>tKXJKn#1RmBkhB"
        "ZeZ2=V}byH<=Rr&Z~LILmu)l*FmWBSDwU%x~O{8RaJi1nV@Gf|Cwao!Zvi#FGc_GHX%uG8$C11pG7c5Mwa-)IhpT"
        ";5_XVw8|~P~cC^npf9Zr5x$F7kiNU{DLNnDrITJhovHtJsc!0("
    )
)
NAMESPACES = " ".join(
    f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{short}:1.0"'
    for short in ("office", "table", "text")
)
CALC = 'xmlns:calcext="urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0"'


def ods(*sheets: str) -> bytes:
    """A spreadsheet of LibreOffice with these rows of XML in each sheet: one, two and so on."""
    tables = "".join(
        f'<table:table table:name="{name}">{rows}</table:table>'
        for name, rows in zip(("one", "two", "three"), sheets, strict=False)
    )
    body = f"<office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body>"
    root = f"<office:document-content {NAMESPACES} {CALC}>{body}</office:document-content>"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        kind = "application/vnd.oasis.opendocument.spreadsheet"
        archive.writestr(zipfile.ZipInfo("mimetype"), kind)
        archive.writestr(zipfile.ZipInfo("META-INF/manifest.xml"), MANIFEST)
        archive.writestr(zipfile.ZipInfo("content.xml"), f"<?xml version='1.0'?>{root}")
    return packed.getvalue()


MANIFEST = (
    '<?xml version="1.0"?><manifest:manifest '
    'xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"></manifest:manifest>'
)


def row(*cells: object, repeated: int = 1) -> str:
    """A row: numbers, texts, XML of cells that begins with <, and None."""
    inside = "".join(map(_cell, cells))
    count = f'table:number-rows-repeated="{repeated}"'
    return f"<table:table-row {count}>{inside}</table:table-row>"


def _cell(value: object) -> str:
    if value is None:
        return "<table:table-cell/>"
    if isinstance(value, str) and value.startswith("<"):
        return value
    if isinstance(value, str):
        text = f"<text:p>{escape(value)}</text:p>"
        return f'<table:table-cell office:value-type="string">{text}</table:table-cell>'
    return f'<table:table-cell office:value-type="float" office:value="{value}"/>'


def typed(kind: str, value: object, attributes: str = "") -> str:
    """A cell of a type, such as "percentage"."""
    name = {"date": "date-value", "time": "time-value", "boolean": "boolean-value"}.get(
        kind, "value"
    )
    return f'<table:table-cell office:value-type="{kind}" office:{name}="{value}" {attributes}/>'
