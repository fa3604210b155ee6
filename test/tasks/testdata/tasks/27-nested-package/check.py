from taskcheck import need, passes, untouched

untouched("services/api/test_app.py", "services/api/etc/settings.json")
passes("python3", "-m", "unittest", cwd="services/api")
need(passes("python3", "services/api/app.py") == "api\n", "app.py does not find its settings from the top folder")
