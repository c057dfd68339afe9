"""Person masks and objects: from annotations, boxes or detections."""
