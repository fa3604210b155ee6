const UNITS = { km: 1000, m: 1 };
