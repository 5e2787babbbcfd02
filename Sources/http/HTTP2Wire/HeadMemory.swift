/// Memory in which heads are built, lent to one connection of a lane after the other: most are
/// idle, and are to keep none. A connection that finds it lent, as while another is in the middle
/// of a head, has its own.
package final class HeadMemory {
    /// Where the memory is.
    private enum Place {
        case here
        case lent
    }

    /// The most bytes of heads that are kept.
    private static let keptMax = 64 << 10

    private var place = Place.here
    @exclusivity(unchecked) private var spare = RequestHeadBuilder(nonce: 0)

    package init() {}

    /// Gives the memory to a builder that has none, if it is here.
    func lend(to builder: inout RequestHeadBuilder) {
        guard case .here = place else { return }
        place = .lent
        builder.exchangeMemory(with: &spare)
    }

    /// Takes the memory of a builder whose heads were all taken. Any builder's will do.
    func takeBack(from builder: inout RequestHeadBuilder) {
        guard case .lent = place, builder.capacity <= Self.keptMax else {
            return builder.forgetAll()
        }
        place = .here
        builder.empty()
        builder.exchangeMemory(with: &spare)
    }
}
