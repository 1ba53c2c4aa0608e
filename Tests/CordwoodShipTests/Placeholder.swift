import XCTest
@testable import CordwoodShip
