/// A picture with two axes, in HTML: shapes in SVG that stretch with the page, and labels as texts
/// that keep their size.
struct Plot {
    /// A label at a share of an axis.
    struct Tick {
        let share: Double
        let text: String
    }

    let title: String
    var legend: [(style: StaticString, text: String)] = []
    var xTicks: [Tick] = []
    var yTicks: [Tick] = []
    /// Texts at the top of vertical lines.
    var marks: [Tick] = []

    /// Units of the SVG's own coordinates, which begin at the top left.
    static let width = 1000.0
    static let height = 200.0

    /// Writes the picture.
    ///
    /// - shapes: writes what is inside the SVG.
    func write(in out: inout HTMLWriter, shapes: (inout HTMLWriter) -> Void) {
        out.element("figure") { out in
            out.element("figcaption") { out in
                out.element("b", text: title)
                for entry in legend {
                    out.element("span", ["class": "key"]) { out in
                        out.element("i", ["class": "\(entry.style)"], text: "")
                        out.text(entry.text)
                    }
                }
            }
            out.element("div", ["class": "plot"]) { out in
                for tick in yTicks {
                    out.element(
                        "span",
                        ["class": "y", "style": place("bottom", tick)],
                        text: tick.text
                    )
                }
                out.element(
                    "svg",
                    [
                        "viewBox": "0 0 1000 200", "preserveAspectRatio": "none", "role": "img",
                        "aria-label": title,
                    ]
                ) { out in
                    for tick in yTicks { grid(tick, in: &out) }
                    shapes(&out)
                    for mark in marks { line(mark, in: &out) }
                }
                for (index, mark) in marks.enumerated() {
                    // Long texts stand below each other, as their lines may be close.
                    let row = mark.text.count > 3 ? index : 0
                    let side: StaticString = mark.share > 0.7 ? "mark left" : "mark"
                    let style = "\(place("left", mark));top:\(row * 18)px"
                    out.element("span", ["class": "\(side)", "style": style], text: mark.text)
                }
            }
            out.element("div", ["class": "x"]) { out in
                for tick in xTicks { out.element("span", text: tick.text) }
            }
        }
    }

    private func place(_ side: StaticString, _ tick: Tick) -> String {
        "\(side):\(Figures.fixed(tick.share * 100, 2))%"
    }

    private func grid(_ tick: Tick, in out: inout HTMLWriter) {
        let y = Figures.fixed((1 - tick.share) * Self.height, 1)
        out.element("line", ["class": "grid", "x1": "0", "x2": "1000", "y1": y, "y2": y], text: "")
    }

    private func line(_ mark: Tick, in out: inout HTMLWriter) {
        let x = Figures.fixed(mark.share * Self.width, 1)
        out.element("line", ["class": "at", "x1": x, "x2": x, "y1": "0", "y2": "200"], text: "")
    }

    /// Writes a bar that ends below at a height; both in shares.
    static func bar(
        _ style: StaticString,
        x: Range<Double>,
        y: Range<Double>,
        in out: inout HTMLWriter
    ) {
        guard y.upperBound > y.lowerBound else { return }
        out.element(
            "rect",
            [
                "class": "\(style)", "x": Figures.fixed(x.lowerBound * width, 2),
                "width": Figures.fixed((x.upperBound - x.lowerBound) * width, 2),
                "y": Figures.fixed((1 - y.upperBound) * height, 2),
                "height": Figures.fixed((y.upperBound - y.lowerBound) * height, 2),
            ],
            text: ""
        )
    }

    /// Writes an area over the whole height that shows a text under the pointer.
    static func hint(_ text: String, x: Range<Double>, in out: inout HTMLWriter) {
        let (start, length) = (x.lowerBound * width, (x.upperBound - x.lowerBound) * width)
        out.element(
            "rect",
            [
                "class": "hint", "x": Figures.fixed(start, 2), "y": "0", "height": "200",
                "width": Figures.fixed(length, 2),
            ]
        ) { $0.element("title", text: text) }
    }

    /// A number with one digit and zeros that is not below a value.
    static func roundedUp(_ value: Double) -> Double {
        guard value > 0, value.isFinite else { return 1 }
        var power = 1.0
        while power * 10 <= value { power *= 10 }
        while power > value { power /= 10 }
        for factor in [1.0, 2, 3, 4, 5, 6, 8] where factor * power >= value {
            return factor * power
        }
        return 10 * power
    }
}
