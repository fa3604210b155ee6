from taskcheck import need, passes, untouched

untouched("check.mjs")
passes("node", "check.mjs")
shown = passes("node", "--input-type=module", "-e",
    "import {isVersion as v} from './versions.mjs'; console.log([v('1a2b3'), v('100.200.300'), v('1.2.3.4'), v('v1.0.0-beta2')].join())")
need(shown.strip() == "false,true,false,true", "1a2b3, 100.200.300, 1.2.3.4 and v1.0.0-beta2 give " + shown)
