"""Rules of erasure, each removed on purpose: the tests of erasure must notice every one."""
