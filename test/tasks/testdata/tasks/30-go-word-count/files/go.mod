module example.test/words

go 1.21
