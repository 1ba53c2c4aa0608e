import Cordwood
