import Expectations
import Testing

@testable import HTTPWire

struct ChannelNewsTests {
    @Test func `a channel that was taken is let go of, though other news never ends`() {
        var news = ChannelNews<HTTP2StreamChannel>()
        weak var first: HTTP2StreamChannel?
        do {
            let channel = HTTP2StreamChannel(1)
            first = channel
            news.note(channel)
        }
        let others = (2...4).map { HTTP2StreamChannel($0) }
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
