for (const label of LABELS) console.log(format(2, label));
