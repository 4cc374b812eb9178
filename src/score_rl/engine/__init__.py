"""The compiled part: arrays and an algorithm in, trained states out. No console, no disk, no flags."""
