import Expectations
import Testing

@testable import HTTPWire

struct ChannelNewsTests {
    private final class Channel: NotedChannel {
        var isNoted = false
    }

    @Test func `a channel that was taken is let go of, though other news never ends`() {
        var news = ChannelNews<Channel>()
        weak var first: Channel?
        do {
            let channel = Channel()
            first = channel
            news.note(channel)
        }
        let others = [Channel(), Channel(), Channel()]
        for other in others { news.note(other) }
        let isFirst = news.next() === first
        #expect(isFirst)
        for round in 0..<100 {
            let next = news.next()
            let isInOrder = next === others[round % others.count]
            #expect(isInOrder)
            if let next { news.note(next) }
        }
        expectEqual(news.count, others.count)
        #expect(first == nil)
    }
}
