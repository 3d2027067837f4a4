"""`python webengine.py PORT`: an empty window of Qt's Chromium that takes orders on that port."""

from __future__ import annotations

import os
import sys

os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ["QTWEBENGINE_DISABLE_SANDBOX"] = "1"  # it shows our own page, and tests may run as root
os.environ["QTWEBENGINE_CHROMIUM_FLAGS"] = "--no-sandbox --disable-gpu --remote-allow-origins=*"
os.environ["QTWEBENGINE_REMOTE_DEBUGGING"] = f"127.0.0.1:{sys.argv[1]}"

from PySide6.QtWebEngineWidgets import QWebEngineView
from PySide6.QtWidgets import QApplication

app = QApplication(sys.argv[:1])
view = QWebEngineView()
view.resize(1280, 900)
view.setHtml("<p>ready</p>")
view.show()
sys.exit(app.exec())
