extension HTMLReport {
    static let style: StaticString = """
        :root { color-scheme: light dark; --page: #fbfbfa; --card: #fff; --ink: #1c1c1a;
          --dim: #63625d; --line: #e2e1dc; --ok: #2a78d6; --high: #c2500f; --bad: #c9302c;
          --good: #1a7f37; }
        @media (prefers-color-scheme: dark) {
          :root { --page: #161615; --card: #1f1f1d; --ink: #eeede9; --dim: #a3a29b; --line: #393935;
            --ok: #5b9cf0; --high: #f0925a; --bad: #ff7b72; --good: #4cc063; } }
        * { box-sizing: border-box; }
        body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 62rem;
          padding: 1rem; background: var(--page); color: var(--ink); }
        h1 { font-size: 1.25rem; margin: .2rem 0; overflow-wrap: anywhere; }
        h2 { font-size: 1rem; margin: 1.6rem 0 .5rem; }
        p { margin: .25rem 0; }
        .dim, dt, th, .x, .y, .mark, footer { color: var(--dim); }
        .passed, .failed { border: 1px solid var(--line); border-left: 5px solid var(--good);
          background: var(--card); padding: .6rem .8rem; border-radius: 4px; margin: .8rem 0; }
        .failed { border-left-color: var(--bad); }
        .passed b { color: var(--good); } .failed b, .wrong { color: var(--bad); }
        .tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(6.4rem, 1fr));
          gap: .5rem; padding: 0; margin: .8rem 0; }
        .tiles div { background: var(--card); border: 1px solid var(--line); border-radius: 4px;
          padding: .45rem .7rem; }
        .tiles dt { font-size: .8rem; }
        .tiles dd { margin: 0; font-size: 1.2rem; font-variant-numeric: tabular-nums; }
        figure { margin: .9rem 0; background: var(--card); border: 1px solid var(--line);
          border-radius: 4px; padding: .7rem .7rem .5rem; }
        figcaption { display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin-bottom: .7rem; }
        .key { font-size: .85rem; color: var(--dim); }
        .key i { display: inline-block; width: .8rem; height: .8rem; margin-right: .35rem;
          vertical-align: -1px; border-radius: 2px; background: var(--ok); }
        .key i.bad { background: var(--bad); }
        .key i.p99, .key i.p50 { height: 3px; vertical-align: 4px; border-radius: 0; }
        .key i.p99 { background: var(--high); }
        .plot { position: relative; margin-left: 4.2rem; height: 200px; }
        svg { display: block; width: 100%; height: 100%; overflow: visible; }
        .y { position: absolute; right: calc(100% + .5rem); transform: translateY(50%);
          font-size: .75rem; white-space: nowrap; }
        .x { display: flex; justify-content: space-between; margin: .35rem 0 0 4.2rem;
          font-size: .75rem; }
        .mark { position: absolute; font-size: .75rem; padding: 0 .3rem; white-space: nowrap;
          background: color-mix(in srgb, var(--card) 75%, transparent); pointer-events: none; }
        .mark.left { transform: translateX(-100%); }
        .grid, .at { stroke: var(--line); stroke-width: 1; vector-effect: non-scaling-stroke; }
        .at { stroke: var(--dim); stroke-dasharray: 3 3; }
        rect.ok { fill: var(--ok); } rect.bad { fill: var(--bad); }
        path { fill: none; stroke: var(--ok); stroke-width: 2; vector-effect: non-scaling-stroke; }
        path.p99 { stroke: var(--high); }
        .hint { fill: transparent; } .hint:hover { fill: var(--ink); fill-opacity: .08; }
        .scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line);
          border-radius: 4px; }
        table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
        th, td { padding: .35rem .6rem; text-align: left; border-top: 1px solid var(--line);
          white-space: nowrap; }
        tr:first-child th { border-top: 0; font-size: .8rem; font-weight: 500; }
        .figure { text-align: right; }
        footer { margin: 1.6rem 0 .5rem; font-size: .8rem; }
        @media (max-width: 30rem) { body { padding: .6rem; } th, td { padding: .3rem .45rem; }
          table { font-size: .85rem; } .plot, .x { margin-left: 3.5rem; } }
        """
}
