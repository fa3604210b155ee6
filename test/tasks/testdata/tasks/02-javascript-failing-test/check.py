from taskcheck import need, passes, untouched

untouched("slug.test.mjs")
passes("node", "--test")
shown = passes("node", "--input-type=module", "-e", "import {slug} from './slug.mjs'; console.log(slug('«Hé, l?été!» of 1999'))")
need(shown.strip() == "h-lt-1999", "a title with many signs gives " + shown)
