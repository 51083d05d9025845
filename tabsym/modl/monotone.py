def best_monotone(search):
    raise NotImplementedError
