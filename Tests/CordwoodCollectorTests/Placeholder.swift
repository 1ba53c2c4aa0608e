import XCTest
@testable import CordwoodCollector
