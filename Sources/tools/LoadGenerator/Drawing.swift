/// Shapes and texts of a picture, as SVG.
struct Drawing {
    private(set) var elements: [String] = []
    let width: Double
    let height: Double

    static let ink = "#1b2733"
    static let faint = "#5b6b7b"
    static let grid = "#e3e8ee"
    static let alarm = "#c62828"

    enum Anchor: String { case start, middle, end }

    /// How a text looks.
    struct Style {
        var size = 12.0
        var color = Drawing.ink
        var anchor = Anchor.start
        var isBold = false
        /// Turned by a quarter, to read upwards.
        var isUpright = false
    }

    mutating func text(_ text: String, _ x: Double, _ y: Double, _ style: Style = Style()) {
        let weight = style.isBold ? #" font-weight="600""# : ""
        let turn = style.isUpright ? #" transform="rotate(-90 \#(Self.n(x)) \#(Self.n(y)))""# : ""
        elements.append(
            #"<text x="\#(Self.n(x))" y="\#(Self.n(y))" font-size="\#(Self.n(style.size))" "#
                + #"fill="\#(style.color)" text-anchor="\#(style.anchor.rawValue)""#
                + weight + turn + ">"
                + Self.escaped(text) + "</text>"
        )
    }

    mutating func line(
        _ from: (x: Double, y: Double),
        _ to: (x: Double, y: Double),
        color: String,
        width: Double = 1
    ) {
        elements.append(
            #"<line x1="\#(Self.n(from.x))" y1="\#(Self.n(from.y))" x2="\#(Self.n(to.x))" "#
                + #"y2="\#(Self.n(to.y))" stroke="\#(color)" stroke-width="\#(Self.n(width))"/>"#
        )
    }

    /// A line through points; `isFilledTo` fills what is between it and that height.
    mutating func path(
        _ points: [(x: Double, y: Double)],
        color: String,
        width: Double = 2,
        isFilledTo base: Double? = nil
    ) {
        guard let first = points.first, let last = points.last else { return }
        let steps = points.map { "\(Self.n($0.x)) \(Self.n($0.y))" }.joined(separator: " L")
        if let base {
            elements.append(
                #"<path d="M\#(Self.n(first.x)) \#(Self.n(base)) L\#(steps) "#
                    + #"L\#(Self.n(last.x)) \#(Self.n(base)) Z" fill="\#(color)" "#
                    + #"fill-opacity="0.16"/>"#
            )
        }
        elements.append(
            #"<path d="M\#(steps)" fill="none" stroke="\#(color)" "#
                + #"stroke-width="\#(Self.n(width))" stroke-linejoin="round"/>"#
        )
    }

    mutating func rectangle(
        _ x: Double,
        _ y: Double,
        _ width: Double,
        _ height: Double,
        _ color: String
    ) {
        elements.append(
            #"<rect x="\#(Self.n(x))" y="\#(Self.n(y))" width="\#(Self.n(width))" "#
                + #"height="\#(Self.n(height))" fill="\#(color)"/>"#
        )
    }

    /// The whole file.
    func svg(title: String) -> String {
        let size = "\(Self.n(width)) \(Self.n(height))"
        return """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(size)" \
            width="\(Self.n(width))" height="\(Self.n(height))" role="img" \
            font-family="Inter, 'Helvetica Neue', Helvetica, Arial, sans-serif">
            <title>\(Self.escaped(title))</title>
            <rect width="100%" height="100%" fill="#ffffff"/>
            \(elements.joined(separator: "\n"))
            </svg>

            """
    }

    private static func n(_ number: Double) -> String {
        let text = Figures.fixed(number, 2)
        guard text.contains(".") else { return text }
        var trimmed = text[...]
        while trimmed.hasSuffix("0") { trimmed.removeLast() }
        if trimmed.hasSuffix(".") { trimmed.removeLast() }
        return String(trimmed)
    }

    /// XML 1.0 §2.4.
    static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
            .replacing(">", with: "&gt;").replacing("\"", with: "&quot;")
    }
}
