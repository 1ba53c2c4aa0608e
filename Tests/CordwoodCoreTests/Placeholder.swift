import XCTest
@testable import CordwoodCore
