import Foundation
import Testing

@testable import PortcullisClient

@Suite struct RouteBookTests {
    private func book(_ clock: ManualClock, limit: Int = 128) throws -> RouteBook {
        var configuration = PortcullisConfiguration(gateway: try Bench.url(FakeGateway.origin))
        configuration.defaultRequirement = SigningRequirement(counter: .window(64))
        configuration.clock = clock
        configuration.limits.routesLearned = limit
        return RouteBook(configuration)
    }

    private func counter(_ book: RouteBook, _ path: String) throws -> SigningRequirement.Counter? {
        let url = try Bench.url(FakeGateway.origin + path)
        guard case .asks(let requirement) = book.knowledge(method: "GET", url: url) else {
            return nil
        }
        return requirement.counter
    }

    @Test func `one replayed counter makes a route strict for a while, not for ever`() throws {
        let clock = ManualClock()
        let book = try book(clock)
        let url = try Bench.url(FakeGateway.origin + "/a")
        book.expectStrict(method: "GET", url: url)
        #expect(try counter(book, "/a") == .strict)
        #expect(try counter(book, "/b") == .window(64))
        // What is learned meanwhile does not make it last.
        let lesson = try #require(
            RouteLesson(sign: "method target", headers: "", accept: nil, counter: "64")
        )
        _ = book.learn(lesson, method: "GET", url: url)
        book.amend(method: "GET", url: url) { $0.accepts = [.assertion] }
        #expect(try counter(book, "/a") == .strict)
        clock.advance(by: 601)
        #expect(try counter(book, "/a") == .window(64))
        book.expectStrict(method: "GET", url: url)
        clock.advance(by: -1e8)
        #expect(try counter(book, "/a") == .window(64))
    }

    @Test func `routes that count as strict are bounded`() throws {
        let clock = ManualClock()
        let book = try book(clock, limit: 2)
        for path in ["/a", "/b", "/c"] {
            book.expectStrict(method: "GET", url: try Bench.url(FakeGateway.origin + path))
            clock.advance(by: 1)
        }
        #expect(try counter(book, "/a") == .window(64))
        #expect(try counter(book, "/c") == .strict)
    }
}
