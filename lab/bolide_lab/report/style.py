"""Owns the look of the page: one style sheet, light, dark and on paper."""

CSS = """
:root{color-scheme:light dark;--page:#fcfcfb;--ink:#16181d;--soft:#5b616e;--rule:#dcdee3;
--panel:#f3f4f6;--others:#9aa0ab;--good:#0b6b38;
--s1:#2a78d6;--s2:#008300;--s3:#e87ba4;--s4:#c98a00;--s5:#1baf7a;--s6:#eb6834;--s7:#4a3aa7;
--s8:#e34948;--s9:#8a5a2b;--s10:#0e8fa3;--s11:#7d8500}
@media (prefers-color-scheme:dark){:root{--page:#15171b;--ink:#e8eaee;--soft:#a2a8b4;
--rule:#343840;--panel:#1e2127;--others:#7b828f;--good:#5fd08f;
--s1:#3987e5;--s2:#2fa32f;--s3:#d55181;--s4:#c98500;--s5:#199e70;--s6:#d95926;--s7:#9085e9;
--s8:#e66767;--s9:#b98452;--s10:#27b3c8;--s11:#a9b12b}}
*{box-sizing:border-box}
html{scroll-padding-top:1rem}
body{margin:0 auto;padding:2rem 1.25rem 5rem;max-width:78rem;background:var(--page);
color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .3rem}
h2{font-size:1.35rem;margin:3rem 0 .6rem;padding-top:1rem;border-top:1px solid var(--rule)}
h3{font-size:1.08rem;margin:2.4rem 0 .3rem}
h3 code{color:var(--soft);font-weight:400}
h4{font-size:.92rem;margin:1.4rem 0 .2rem}
p{margin:.4rem 0 .7rem;max-width:46rem}
a{color:var(--s1)}
.soft,.legend,caption,dt{color:var(--soft)}
.soft,.legend{font-size:.87rem}
code,pre{font:.86em/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
code{overflow-wrap:anywhere}
pre{background:var(--panel);padding:.8rem 1rem;border-radius:6px;overflow-x:auto;margin:.4rem 0}
nav{font-size:.92rem;display:flex;flex-wrap:wrap;gap:.15rem .9rem;margin:.8rem 0}
.wide{overflow-x:auto;margin:.6rem 0 1rem}
table{border-collapse:separate;border-spacing:0;font-size:.85rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:.2rem 0 .4rem}
th,td{padding:.28rem .55rem .28rem 0;text-align:right;white-space:nowrap;vertical-align:top;
border-bottom:1px solid var(--rule)}
th{font-weight:600;color:var(--soft)}
th:first-child,td:first-child,.text{text-align:left}
th:first-child,td:first-child{position:sticky;left:0;background:var(--page)}
.text{white-space:normal;min-width:8rem;max-width:34rem}
td.best{font-weight:700;color:var(--good)}
td.even{font-weight:600}
td small{display:block;color:var(--soft);font-weight:400;font-size:.86em}
th{vertical-align:bottom;white-space:normal;max-width:7rem}
.plot{margin:.5rem 0 .2rem}.plot>svg{display:block}
.plot text{fill:var(--ink);font:12px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
.plot .tick{fill:var(--soft);font-size:11px}
@media screen and (max-width:600px){.plot .inner{display:none}body{padding:1rem .9rem 3rem}}
.plot .value{font-variant-numeric:tabular-nums}
.plot .grid{stroke:var(--rule);stroke-width:1}
.plot .whisker{stroke:var(--ink);stroke-width:1.3;fill:none}
.legend{display:flex;flex-wrap:wrap;gap:.1rem 1.1rem;margin:.1rem 0 1rem;max-width:none}
.legend svg{vertical-align:middle;margin-right:.35rem}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(19rem,1fr));gap:0 1.5rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1.2rem;font-size:.9rem;margin:0}
dd{margin:0;overflow-wrap:anywhere}
details{margin:.5rem 0;font-size:.9rem}
summary{cursor:pointer;color:var(--soft)}
ul{padding-left:1.2rem;margin:.3rem 0;max-width:46rem}
li{margin:.15rem 0}
@media print{:root{color-scheme:light;--page:#fff;--ink:#000;--soft:#444;--rule:#bbb;
--panel:#f4f4f4;--others:#8a8f99;--good:#064;--s1:#2a78d6;--s2:#008300;--s3:#e87ba4;--s4:#c98a00;
--s5:#1baf7a;--s6:#eb6834;--s7:#4a3aa7;--s8:#e34948;--s9:#8a5a2b;--s10:#0e8fa3;--s11:#7d8500}
@page{size:A4 landscape;margin:12mm}
details::details-content{content-visibility:visible;display:block}
body{padding:0;max-width:none;font-size:10.5pt;-webkit-print-color-adjust:exact;
print-color-adjust:exact}
nav,details.source{display:none}
h2,h3,h4{break-after:avoid}
.plot,tr,.legend{break-inside:avoid}
.wide{overflow:visible}table{font-size:8pt}th,td{padding-right:.4rem}a{color:inherit}}
"""
