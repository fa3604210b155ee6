module example.test/intervals

go 1.21
